"""Which table goes where: routes, allow lists, filters."""
