"""Four vision-language tasks one after another, then low-shot transfer (CLiMB: Srinivasan et al., 2022)."""
