ƒ"
.fm_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA{"theme":"dark"} 
user:000000000005a
29x2k8"python2
x-devicephone