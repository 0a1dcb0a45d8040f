import { type AlertCase, HOUR, MINUTE } from '../alert-case.ts'

export const UNPROVEN_MESSAGE: AlertCase = {
  name: 'unproven-message',
  story: 'the only message of a quiet queue fails for half an hour, and the cause is not known',
  alert: 'RedriveMessageUnproven',
  afterMs: 31 * MINUTE,
  isLong: true,
  async begin(place) {
    // The default, in the time of the drill.
    const maxAge = place.scaledMs(HOUR)
    const consumer = await place.consumer({ policy: { retry: { unproven: { maxAge } } } })
    place.faultBegins()
    await place.send('confusing')
    return async () => consumer.send('repair')
  },
}
