"""An evaluation: questions through the arms, checked, judged and compared."""
