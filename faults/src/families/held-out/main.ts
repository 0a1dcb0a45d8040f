import { readHeldOut } from './read.ts'
import { reportOf } from './report.ts'

process.stdout.write(`${reportOf(readHeldOut())}\n`)
