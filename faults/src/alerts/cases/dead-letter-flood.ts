import type { AlertCase } from '../alert-case.ts'
import { triaged } from '../place.ts'

/** More than the burst, and fewer than the 100 that raise an alert about their number. */
const COUNT = 8
const BURST = 5

export const DEAD_LETTER_FLOOD: AlertCase = {
  name: 'dead-letter-flood',
  story: 'many messages become dead letters for the same reason',
  alert: 'RedriveDeadLetterFlood',
  also: ['RedriveNewSignature'],
  afterMs: 0,
  isInSmoke: true,
  async begin(place) {
    await place.consumer({ policy: { flood: { burst: BURST } } })
    place.faultBegins()
    await place.send('declined', COUNT)
    return () => triaged(place)
  },
}
