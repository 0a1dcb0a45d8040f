import { exerciseStore } from '@redrive/testing'
import { describe, it } from 'vitest'
import { Place } from './place.ts'

/** The minimum: claims of a crashed process are free after this. */
const LEASE = '1s'

for (const fsync of ['batch', 'always', 'never'] as const) {
  exerciseStore({
    runner: { describe, it },
    name: `files, fsync ${fsync}`,
    open: () => Place.make({ lease: LEASE, fsync }),
    crash: (place, store) => place.crash(store),
    bounded: () => Place.make({ maxBytes: 20_000 }),
  })
}

exerciseStore({
  runner: { describe, it },
  name: 'files, a few lines in each',
  open: () => Place.make({ lease: LEASE, maxFileBytes: 4_096 }),
  crash: (place, store) => place.crash(store),
  bounded: () => Place.make({ maxBytes: 20_000, maxFileBytes: 4_096 }),
})
