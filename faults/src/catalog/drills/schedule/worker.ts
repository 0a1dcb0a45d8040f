/** Runs the background work of the catalog in a separate process, for several sources in memory. */
import { catalog, startBackground } from '@redrive/catalog'
import { openHistory } from '../../../evidence/history.ts'
import { openDatabase } from '../../../harness/effects.ts'
import { ready } from '../../../harness/process.ts'
import { recordedSource } from './recorded-source.ts'

export interface ScheduleWorker {
  readonly catalogUrl: string
  readonly name: string
  readonly folder: string
  readonly sources: readonly string[]
}

const options = JSON.parse(process.argv[2] ?? '') as ScheduleWorker
const history = openHistory(options.folder, options.name)
/** 12 connections for the background work. */
const pool = openDatabase(options.catalogUrl, { connections: 12 })

await startBackground({
  catalog: catalog({ pool }),
  pool,
  sources: options.sources.map((name) => ({ source: recordedSource(name, history) })),
  role: 'replay',
})
ready()
