"""Files, pictures and links beside a question: read as text and pictures, in a process of their own."""
