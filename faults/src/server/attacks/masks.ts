import type { Scenario } from '../../harness/scenario.ts'
import { isOk, must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { plan, type Run } from './runs.ts'
import { MASKED_SOURCE } from './target.ts'

/** A value that the mask `/card/number` hides. No detector finds it. */
const SECRET = 'secret-value-7431'
/** A card number that the detectors find. */
const CARD = '4111 1111 1111 1111'

/** An operator without permission to unmask tries to see masked values. */
export const MASKS: Scenario = attack(
  'masks',
  'an operator sees a masked value in a body, an error, a header, a changed copy, a filter or the audit log',
  async (scene) => {
    await stored(scene)
    await headers(scene)
    await patched(scene)
    await checked(scene)
    await filtered(scene)
    await audited(scene)
  },
)

const killed = async ({ target }: Scene, special: object): Promise<string> => {
  const [id = ''] = await target.queues.kill(target.pool, MASKED_SOURCE, [special])
  return id
}

/** Returns everything that an operator can read of a dead letter. */
async function readable({ target: { as } }: Scene, id: string): Promise<string> {
  const { group } = must<{ group: string }>(await as.alice('GET', `/api/v1/dead-letters/${id}`))
  const filter = encodeURIComponent(`group:${group}`)
  const paths = [
    `/dead-letters/${id}`,
    `/dead-letters/${id}/cycles`,
    `/dead-letters/${id}/payload?reason=curious`,
    `/dead-letters?filter=${filter}`,
    `/dead-letters/export?filter=${filter}`,
    `/groups/${group}`,
    `/groups/${group}/explanation`,
  ]
  const responses = await Promise.all(paths.map((path) => as.alice('GET', `/api/v1${path}`)))
  return responses.map(({ text }) => text).join('\n')
}

/** Bodies whose producer did not write the value where the mask expects it. */
async function stored(scene: Scene): Promise<void> {
  const card = { card: { number: SECRET } }
  const bodies = {
    'at its place': { order: 1, ...card },
    'in a list': [{ order: 1, ...card }],
    'as JSON in a text': JSON.stringify({ order: 1, ...card }),
    'as JSON in a text of the object': { order: 1, card: JSON.stringify(card.card) },
    'in upper case': { order: 1, Card: { Number: SECRET } },
    'at another place': { order: 1, payment: card },
  }
  for (const [how, body] of Object.entries(bodies)) {
    const id = await killed(scene, { body: JSON.stringify(body) })
    const text = await readable(scene, id)
    scene.tries.note(`a masked value ${how} is shown`, text.includes(SECRET))
  }
  const message = `Card ${CARD} of a customer was declined`
  const id = await killed(scene, { body: '{"card":{"number":1}}', message, key: CARD })
  const text = await readable(scene, id)
  scene.tries.note('a card number in an error or a key is shown', text.includes(CARD))
}

async function headers(scene: Scene): Promise<void> {
  const names = ['authorization', 'Cookie', 'x-api-key', 'authToken', 'x-customer']
  for (const name of names) {
    const id = await killed(scene, { headers: { [name]: SECRET } })
    const text = await readable(scene, id)
    scene.tries.note(`the header ${name} is shown`, text.includes(SECRET))
  }
}

/** A patch that moves the value to a place without a mask, or compares it. */
async function patched(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const body = JSON.stringify({ order: 1, card: { number: SECRET }, list: [1] })
  const id = await killed(scene, { body })
  const patches = {
    'copies the value': { op: 'copy', from: '/card/number', path: '/x' },
    'moves the value': { op: 'move', from: '/card/number', path: '/x' },
    'copies the object': { op: 'copy', from: '/card', path: '/x' },
    'copies the whole body': { op: 'copy', from: '', path: '/x' },
    'compares the value': { op: 'test', path: '/card/number', value: SECRET },
    'compares the object': { op: 'test', path: '/card', value: { number: SECRET } },
  }
  for (const [how, operation] of Object.entries(patches)) {
    const change = { patch: [operation] }
    const response = await plan(target.as.alice, { selection: { ids: [id] }, change })
    tries.note(`a patch ${how}`, isOk(response))
  }
}

/** A schema of an administrator. The reason of a skipped item must not contain the value. */
async function checked(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const { as } = target
  const type = 'masked'
  const schema = { properties: { card: { properties: { number: { enum: ['other'] } } } } }
  const path = `/api/v1/sources/${MASKED_SOURCE}/schema`
  must(await as.root('PUT', path, { body: { type, schema } }))
  const id = await killed(scene, { type, body: JSON.stringify({ card: { number: SECRET } }) })
  const run = must<Run>(await plan(as.alice, { selection: { ids: [id] } }))
  const items = await as.alice('GET', `/api/v1/replays/${run.id}/items`)
  if (run.counts.skipped !== 1) throw new Error(`The schema was not checked: ${items.text}`)
  tries.note('the reason of a skipped item has the value', items.text.includes(SECRET))
}

/** The result of a filter shows whether the value is equal. */
async function filtered(scene: Scene): Promise<void> {
  const { target, tries } = scene
  for (const word of [`json:/card/number=${SECRET}`, `header:x-customer=${SECRET}`]) {
    const filter = `source:${MASKED_SOURCE} after:0 ${word}`
    const path = `/api/v1/dead-letters?filter=${encodeURIComponent(filter)}`
    tries.note(`the filter ${word} is accepted`, isOk(await target.as.alice('GET', path)))
    const response = await plan(target.as.alice, { selection: { filter } })
    tries.note(`a plan with the filter ${word} is accepted`, isOk(response))
  }
}

/** The readers of the audit log need not have permission to unmask. */
async function audited({ target: { as }, tries }: Scene): Promise<void> {
  const filter = `source:${MASKED_SOURCE} after:0 key:${SECRET}`
  await as.root('GET', `/api/v1/dead-letters/export?filter=${encodeURIComponent(filter)}`)
  const { text } = await as.root('GET', '/api/v1/audit?limit=200')
  if (!text.includes('exportDeadLetters')) throw new Error('The export is not in the audit log.')
  tries.note('the audit log contains the value of a filter', text.includes(SECRET))
}
