import { until } from '@redrive/testing'
import { Narrator } from './demo/narrator.ts'
import { Users } from './demo/users.ts'
import { inWorld, type World } from './demo/world.ts'
import type { Health } from './health.ts'

const story = new Narrator()
const say = (text: string) => story.say(text)

async function play(world: World): Promise<void> {
  const users = new Users()
  await goodEvents(world, users)
  await badMessage(world)
  await outage(world, users)
  await recovery(world, users)
  await ending(world, users)
}

async function goodEvents({ queue, broker, database, service }: World, users: Users) {
  story.heading('1. Events arrive, profiles appear')
  const events = [
    ...['ada', 'grace', 'edsger', 'barbara', 'tony'].map((name) => users.register(name)),
    users.rename('grace', 'Hopper'),
    users.delete('tony'),
  ]
  await broker.publish(events)
  await until('all events are handled', async () => {
    const { handled } = await service.health()
    return handled === events.length
  })
  say(`${events.length} events of ${queue} are handled. Profiles in Postgres:`)
  for (const line of await database.profiles()) say(`  ${line}`)
}

async function badMessage({ queue, broker, service }: World) {
  story.heading('2. A message that can never be handled')
  const name = { firstName: 'Mallory', lastName: 'Example' }
  const data = { subject: 'user-mallory', email: 'no address', ...name, occurredAt: NOW }
  await broker.publish([{ type: 'user.registered', data }])
  const [deadLetter] = await until('the message is a dead letter', async () => {
    const found = await broker.readDeadLetters()
    return found.length > 0 && found
  })
  if (deadLetter === undefined) throw new Error('There is no dead letter.')
  say(`No retry can help, so it is immediately in ${queue}.dlq, with its history:`)
  say(`  reason     ${deadLetter.reason}, class ${deadLetter.class}`)
  for (const { number, message } of deadLetter.delivery.cycle.history) {
    say(`  attempt ${number}  ${message}`)
  }
  say(`  body       ${Buffer.from(deadLetter.delivery.bytes).toString()}`)
  say(`Other messages are not delayed. ${shown(await service.health())}`)
}

const NOW = new Date().toISOString()

async function outage({ broker, proxy, service }: World, users: Users) {
  story.heading('3. The database goes away, and events keep coming')
  const cutAt = performance.now()
  const madeBefore = users.made
  const register = (batch: string) =>
    Array.from({ length: 10 }, (_, index) => users.register(`${batch}-${index}`))

  proxy.cut()
  await broker.publish([...register('early'), users.rename('ada', 'Byron')])
  const health = await until('the breaker is open', async () => {
    const now = await service.health()
    return now.breaker === 'open' && now
  })
  say(`Five failures in a row: the breaker of postgres opens. ${shown(health)}`)
  say('Consumption pauses, and new events stay in the queue.')
  await broker.publish([...register('later'), users.rename('ada', 'King'), users.delete('edsger')])
  // Two: one to see the first probe, and one to see that it keeps probing.
  await until('two probes have failed', () => service.count(/from=halfOpen to=open/) >= 2)
  await broker.publish([...register('late'), users.rename('barbara', 'Liskov')])

  const missed = users.made - madeBefore
  await until('every message waits', async () => {
    const { running, waiting } = await service.health()
    return running + waiting + (await broker.waiting()) === missed
  })
  const seconds = ((performance.now() - cutAt) / 1000).toFixed(1)
  say(
    `From time to time one message probes. After ${seconds} s all ${missed} events are still waiting;`,
  )
  await mustHaveOneDeadLetter(broker)
  say('there is still only the first dead letter.')
}

async function recovery({ broker, database, proxy, service }: World, users: Users) {
  story.heading('4. The database is back')
  proxy.restore()
  await until('the breaker is closed', async () => (await service.health()).breaker === 'closed')
  say('Two probes succeeded: the breaker closes and the backlog drains.')
  const expected = users.expected().join('\n')
  await until('the backlog is drained', async () => {
    const { status, running, waiting } = await service.health()
    const isIdle = status === 'up' && running + waiting + (await broker.waiting()) === 0
    return isIdle && (await database.profiles()).join('\n') === expected
  })
  say(shown(await service.health()))
}

async function ending({ broker, database, service }: World, users: Users) {
  story.heading('5. The service is stopped, and the books are checked')
  const code = await service.stop()
  if (code !== 0) throw new Error(`The service ended with exit code ${code}.`)
  const profiles = await database.profiles()
  const expected = users.expected()
  const left = await broker.waiting()
  say(`${users.made} good events and 1 bad one were published; ${left} are left in the queue.`)
  const lost = expected.filter((line) => !profiles.includes(line))
  if (lost.length > 0) throw new Error(`Lost: ${lost.join(', ')}`)
  if (profiles.length !== expected.length)
    throw new Error(`There are ${profiles.length} profiles instead of ${expected.length}.`)
  if (left !== 0) throw new Error(`${left} messages are left in the queue.`)
  await mustHaveOneDeadLetter(broker)
  story.end(`demo ok: ${profiles.length} profiles, 1 dead letter, 0 lost`)
}

async function mustHaveOneDeadLetter(broker: World['broker']): Promise<void> {
  const count = await broker.deadLetters()
  if (count !== 1) throw new Error(`Expected 1 dead letter, found ${count}.`)
}

function shown({ status, breaker, handled, failed }: Health): string {
  return `Health: ${status}, breaker ${breaker}, ${handled} handled, ${failed} attempts failed.`
}

try {
  await inWorld(play, (line) => story.quote(line))
} catch (error) {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
