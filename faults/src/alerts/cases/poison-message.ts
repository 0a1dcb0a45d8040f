import type { AlertCase } from '../alert-case.ts'
import { type AlertConsumer, ingested, type Place, triaged } from '../place.ts'

/** The process crashes each time it handles this message, and is restarted, as an orchestrator does. */
export const POISON_MESSAGE: AlertCase = {
  name: 'poison-message',
  story: 'a message crashes its process again and again, until it is quarantined',
  alert: 'RedriveQuarantined',
  also: ['RedriveNewSignature'],
  afterMs: 0,
  isInSmoke: true,
  async begin(place) {
    const first = await started(place)
    await place.send('crash')
    let consumer = first
    const restart = async () => {
      if (consumer.isAlive) return
      consumer = await started(place)
      // The last process quarantines the message.
      place.faultBegins()
    }
    place.repeat(restart)
    await ingested(place, 1)
    return () => triaged(place)
  },
}

/** Quarantined after three crashes, so that the case is short. */
const started = (place: Place): Promise<AlertConsumer> =>
  place.consumer({ policy: { poison: { suspectDeliveries: 2, trials: 1 } } })
