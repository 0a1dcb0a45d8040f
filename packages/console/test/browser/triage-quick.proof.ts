import { triage } from './triage/triage.suite.ts'

triage({ orders: 500, payments: 300, invoices: 200 })
