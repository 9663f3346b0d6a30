module github.com/yardmaster-io/yardmaster/tools/mutate

go 1.26.0
