"""The trusted side: inputs, references, comparison, and candidates on either device."""
