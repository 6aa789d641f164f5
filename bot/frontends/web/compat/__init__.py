"""APIs of other systems, a folder for each; `app` finds them, and nothing else imports one."""
