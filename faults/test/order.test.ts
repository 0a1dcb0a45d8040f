import { describe, expect, it } from 'vitest'
import { checkOrder } from '../src/evidence/check-order.ts'
import { Story } from './evidence.ts'

const laneOf = (id: string) => (id.includes('/') ? id.split('/')[0] : undefined)
const textsIn = (story: Story) =>
  checkOrder(story.evidence().entries, laneOf).map(({ id, text }) => `${id} ${text}`)

const started = (story: Story, id: string) =>
  story.at('consumer-1', { what: 'handler_started', id, attempt: 1 })
const ended = (story: Story, id: string) =>
  story.at('consumer-1', { what: 'effect', id, isNew: true })

describe('the order within a lane', () => {
  it('is kept when each message waits for the previous one', () => {
    const story = new Story().sent('lane/1').sent('lane/2').handled('lane/1').handled('lane/2')
    expect(textsIn(story)).toEqual([])
  })

  it('is broken when a later message overtakes', () => {
    const story = new Story().sent('lane/1').sent('lane/2').handled('lane/2').handled('lane/1')
    expect(textsIn(story)).toEqual(['lane/2 started before lane/1 finished'])
  })

  it('is broken when a later message starts while the earlier one waits for its retry', () => {
    const story = new Story().sent('lane/1').sent('lane/2')
    started(story, 'lane/1').at('consumer-1', { what: 'failed', id: 'lane/1', attempt: 1 })
    ended(started(ended(started(story, 'lane/2'), 'lane/2'), 'lane/1'), 'lane/1')
    expect(textsIn(story)).toEqual(['lane/2 started before lane/1 finished'])
  })

  it('allows either of two messages sent together to be first, but not both concurrently', () => {
    const together = () =>
      new Story().at(
        'producer',
        { what: 'attempted', id: 'lane/1', kind: 'good' },
        { what: 'attempted', id: 'lane/2', kind: 'good' },
        { what: 'acknowledged', id: 'lane/1' },
        { what: 'acknowledged', id: 'lane/2' },
      )
    expect(textsIn(together().handled('lane/2').handled('lane/1'))).toEqual([])
    const both = started(started(together(), 'lane/2'), 'lane/1')
    expect(textsIn(ended(ended(both, 'lane/2'), 'lane/1'))).toEqual([
      'lane/1 ran concurrently with lane/2',
    ])
  })

  it('is not checked between lanes, or without a lane', () => {
    const story = new Story().sent('a/1').sent('b/1').sent('c').sent('d')
    expect(textsIn(story.handled('d').handled('c').handled('b/1').handled('a/1'))).toEqual([])
  })
})
