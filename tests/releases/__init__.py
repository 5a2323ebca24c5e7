"""What each release has saved and published, which later ones must go on with."""
