from hypothesis import settings

settings.register_profile("patient", deadline=None)  # the machine may be busy; a slow example is no wrong one
settings.load_profile("patient")
