"""What concerns the process and the user's folders: caches, children, what is left over."""
