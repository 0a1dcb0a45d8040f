import { afterEach, describe, expect, it } from 'vitest'
import type { Candidate } from '../src/harness.ts'
import { type Contender, type Fate, openAll, type Stage } from '../src/kafka/contender.ts'
import { bareLoop, handedOff } from '../src/kafka/handwritten.ts'
import { kafkajs, kafkajsHandedOff } from '../src/kafka/kafkajs.ts'
import { parking } from '../src/kafka/parked.ts'
import { fateOf, gaugeOf } from '../src/kafka/poison.ts'
import { type Result, race } from '../src/kafka/race.ts'
import { redriveRacer } from '../src/kafka/racers.ts'
import { FIXED, GIVING_UP, redrive, RETRYING } from '../src/kafka/redrive.ts'

const COUNT = 250

let opened: Candidate[] = []
afterEach(async () => {
  for (const candidate of opened.splice(0)) await candidate.close?.()
})

async function filled(open: (stage: Stage) => Promise<Contender>, fate: Fate): Promise<Candidate> {
  opened = await openAll([{ name: 'it', open }], fate)
  const candidate = opened[0] as Candidate
  await candidate.prepare?.(COUNT)
  return candidate
}

describe('a candidate on Kafka', () => {
  it.each([
    ['the loop', 'done', bareLoop],
    ['the loop', 'deadLettered', handedOff],
    ['redrive', 'done', redrive(FIXED)],
    ['redrive', 'deadLettered', redrive(GIVING_UP)],
    ['redrive', 'retried', redrive(RETRYING)],
    ['redrive with keys parked', 'done', parking(30)],
    ['kafkajs', 'done', kafkajs],
    ['kafkajs', 'retried', kafkajsHandedOff],
  ] as const)('%s leaves every record %s', { timeout: 60_000 }, async (_, fate, open) => {
    const candidate = await filled(open, fate)
    await candidate.run(COUNT)
    await expect(candidate.verify?.(COUNT)).resolves.toBeUndefined()
  })

  it('fails its check when a handler ran twice', { timeout: 60_000 }, async () => {
    let isPrimed = false
    const eager = ({ handler, ...stage }: Stage): Promise<Contender> => {
      const twice = async () => {
        await handler()
        if (isPrimed) await handler()
      }
      return bareLoop({ ...stage, handler: twice })
    }
    const candidate = await filled(eager, 'done')
    isPrimed = true
    await candidate.run(COUNT)
    await expect(candidate.verify?.(COUNT)).rejects.toThrow('500 calls instead of 250')
  })

  it('fails its check when a failure left no copy', { timeout: 60_000 }, async () => {
    await expect(filled(bareLoop, 'deadLettered')).rejects.toThrow('0 copies instead of 1')
  })
})

describe('the race past a poison record', () => {
  it('ends when all other records are handled and the poison record is settled', {
    timeout: 60_000,
  }, async () => {
    const course = { records: 200, poison: 20 }
    const result = await race(redriveRacer, course, 30_000)
    expect(result).toMatchObject({ others: 199, repeated: 0, deadLetters: 1 })
    expect(result.poisonAttempts).toBeGreaterThan(1)
  })

  const stuck: Result = {
    name: 'stuck',
    others: 20,
    repeated: 0,
    seconds: 1,
    perSecondBefore: 20,
    perSecondAfter: 0,
    poisonAttempts: 7,
    deadLetters: 0,
    became: undefined,
    committed: 20,
  }

  it('reports the outcome of the poison record', () => {
    const course = { records: 200, poison: 20 }
    expect(fateOf(course, stuck)).toBe('blocks the partition at 20')
    expect(fateOf(course, { ...stuck, committed: 200 })).toBe('committed, lost')
    expect(fateOf(course, { ...stuck, deadLetters: 1, became: 'quarantine' })).toBe('quarantined')
    expect(fateOf(course, { ...stuck, deadLetters: 1 })).toBe('dead letter')
  })

  it('is lost when one record was not handled', () => {
    const { verdicts } = gaugeOf({ records: 22, poison: 20 }, [stuck], stuck)
    expect(verdicts.map(({ kind }) => kind)).toEqual(['missed'])
  })
})
