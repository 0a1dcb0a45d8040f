import { testSpeed } from './speed.suite.ts'

testSpeed({ messages: 100_000, rows: 5_000, minutes: 12 })
