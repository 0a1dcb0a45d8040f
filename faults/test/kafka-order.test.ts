import { describe, expect, it } from 'vitest'
import { checkKeys } from '../src/kafka/order.ts'
import { Story } from './evidence.ts'

const keyOf = (id: string) => id.split('/')[0] ?? ''
const textsIn = (story: Story) =>
  checkKeys(story.evidence().entries, keyOf).map(({ id, text }) => `${id} ${text}`)

const began = (story: Story, id: string, by = 'consumer-1') =>
  story.at(by, { what: 'handler_started', id, attempt: 1 })
const ended = (story: Story, id: string, by = 'consumer-1') =>
  story.at(by, { what: 'effect', id, isNew: true })

const two = () => new Story().sent('key/1').sent('key/2')

describe('the order of a key', () => {
  it('is kept when each waits for the one before, and when both run again after a crash', () => {
    const story = two().handled('key/1').handled('key/2')
    expect(textsIn(story)).toEqual([])
    const again = began(ended(began(story, 'key/1', 'b'), 'key/1', 'b'), 'key/2', 'b')
    expect(textsIn(again)).toEqual([])
  })

  it('is broken by one that begins too early', () => {
    expect(textsIn(two().handled('key/2').handled('key/1'))).toEqual([
      'key/2 began before key/1 was done',
      'key/1 consumer-1 began it again after one behind it',
    ])
  })

  it('is broken by two at once, wherever they run', () => {
    const story = two().handled('key/1')
    expect(textsIn(began(began(story, 'key/1', 'a'), 'key/2', 'b'))).toEqual([
      'key/2 ran together with key/1 in a',
    ])
  })

  it('is not held up by one that was refused by the business, or whose process died', () => {
    const refused = new Story().sent('key/1', 'business').sent('key/2')
    began(refused, 'key/1').at('consumer-1', { what: 'failed', id: 'key/1', attempt: 1 })
    expect(textsIn(began(refused, 'key/2'))).toEqual([])
    const dead = began(two(), 'key/1', 'a').at('harness', {
      what: 'exited',
      process: 'a',
      isCrash: true,
      inFlight: 1,
    })
    expect(textsIn(began(dead, 'key/1', 'b'))).toEqual([])
  })
})
