"""The asyncio actors that carry a merge task, and the small kernel that they run on."""
