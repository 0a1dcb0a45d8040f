// node --conditions=@redrive/source exiting.ts MODE: emits 20 events to a slow sink, and ends as MODE describes.
import { recordingDeadLetters } from '@redrive/testing'
import { createEmitter, flushOnExit, nonFailing, type Sink } from '../src/index.ts'

const mode = process.argv[2]
const slow: Sink = {
  name: 'slow',
  batch: 1,
  // A background timer: the process has no other work while it waits.
  send: () => new Promise((resolve) => void setTimeout(resolve, 60_000).unref()),
  close: () => Promise.resolve(),
}
const idle: Sink = { ...slow, send: () => Promise.resolve() }
const store = recordingDeadLetters()
const emitter = createEmitter({
  sinks: { slow: mode === 'schedule' ? idle : slow },
  store,
  queue: { maxEvents: 100, onFull: 'store' },
  // 24 h: its timer must not be the reason why the process continues.
  maxWait: '1d',
  ...(mode === 'schedule' && { autoReplay: { schedule: '*/5 * * * *' } }),
})
if (mode !== 'schedule') flushOnExit(emitter, { drain: '10ms' })
if (mode === 'own handler') process.on('SIGTERM', () => setTimeout(() => process.exit(7), 200))
nonFailing(() => {
  for (let count = 0; count < 20; count++) void emitter.emit({ type: 'order.paid', data: count })
})
const save = store.save.bind(store)
store.save = async (deadLetter) => {
  await save(deadLetter)
  process.stdout.write(`${deadLetter.reason}\n`)
}
setImmediate(() => {
  if (mode === 'signal' || mode === 'own handler') process.kill(process.pid, 'SIGTERM')
})
