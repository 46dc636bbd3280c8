"""`prism-gpu regress`: our engines against PRISM's, in every state."""
