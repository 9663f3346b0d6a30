module github.com/yardmaster-io/yardmaster/infra/tools/mutate

go 1.26.0
