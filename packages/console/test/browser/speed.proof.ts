import { testSpeed } from './speed.suite.ts'

testSpeed({ messages: 5_000_000, rows: 100_000, minutes: 60 })
