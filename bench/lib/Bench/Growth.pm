package Bench::Growth;
1;
