/** Publishes the runs of several sources in memory, with one worker in a separate process. */
import { setTimeout as after } from 'node:timers/promises'
import { catalog } from '@redrive/catalog'
import { openHistory } from '../../../evidence/history.ts'
import { openDatabase } from '../../../harness/effects.ts'
import { ready } from '../../../harness/process.ts'
import { recordedSource } from './recorded-source.ts'

interface ScheduleWorker {
  readonly catalogUrl: string
  readonly name: string
  readonly folder: string
  readonly sources: readonly string[]
}

const options = JSON.parse(process.argv[2] ?? '') as ScheduleWorker
const history = openHistory(options.folder, options.name)
const pool = openDatabase(options.catalogUrl)
const sources = options.sources.map((name) => ({ source: recordedSource(name, history) }))
const replayer = catalog({ pool }).replays.replayer({ sources })
/** Time between two turns without work, as in the background jobs. */
const IDLE_MS = 100

async function publish(): Promise<never> {
  for (;;) {
    if ((await replayer.turn()) === undefined) await after(IDLE_MS)
  }
}

ready()
await publish()
