import { type AlertCase, MINUTE } from '../alert-case.ts'

/** More than the 64 levels that the catalog accepts. */
const LEVELS = 70

const deepHeaders = () =>
  Array.from({ length: LEVELS }).reduce<Record<string, unknown>>((deep) => ({ deep }), {})

export const SET_ASIDE_MESSAGE: AlertCase = {
  name: 'set-aside-message',
  story: 'a dead letter has headers that the catalog cannot store',
  alert: 'RedriveSetAside',
  afterMs: MINUTE,
  async begin(place) {
    const { client, source } = place
    await place.consumer()
    place.faultBegins()
    await place.sendDeadLetter(Buffer.from('{}'), { headers: deepHeaders() })
    return async () => {
      const { messages } = await client.call('listSetAside', { query: { sources: [source] } })
      await client.call('discardSetAside', { body: { ids: messages.map(({ id }) => id) } })
    }
  },
}
