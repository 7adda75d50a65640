dj`
P{"room":"0000000000007","key":"k2","body":"Grüße ☕ \"quoted\"\nsecond line"}message.send