import { triage } from './triage/triage.suite.ts'

triage({ orders: 20_000, payments: 12_000, invoices: 8_000 })
