import { type AlertCase, MINUTE } from '../alert-case.ts'
import { ingested, triaged } from '../place.ts'

const COUNT = 3

export const STUCK_REPLAY: AlertCase = {
  name: 'stuck-replay',
  story: 'replayed messages arrive, and their handlers do not end',
  alert: 'RedriveReplayStopped',
  also: ['RedriveNewSignature'],
  afterMs: 15 * MINUTE,
  isLong: true,
  async begin(place) {
    const { client, source } = place
    const consumer = await place.consumer({ policy: { timeout: '10m' } })
    await place.send('declined', COUNT)
    await ingested(place, COUNT)
    const filter = `after:1h source:${source}`
    const { id, hash } = await client.call('planReplay', { body: { selection: { filter } } })
    place.faultBegins()
    await client.call('approveReplay', { params: { id }, body: { hash } })
    return async () => {
      consumer.send('repair')
      await triaged(place)
    }
  },
}
