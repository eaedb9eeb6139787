"""Programs in the styles of well-known repositories, as strangers wrote them: whole scripts that print figures."""
