import { describe, expect, it } from 'vitest'
import { asMermaid, asTree, kafkaTopology, rabbitmqTopology } from '../src/topology.ts'
import { KAFKA, queue, RABBITMQ } from './good.ts'

describe('topology', () => {
  it('shows queues below their source, with their routes', () => {
    expect(asTree(rabbitmqTopology(RABBITMQ))).toEqual([
      'orders (quorum) -> orders.dlq',
      '├─ orders.delay.5s (quorum, waits 5000 ms) -> orders',
      '└─ orders.dlq (quorum)',
    ])
  })

  it('shows topics below their source, and the ways that a group takes', () => {
    const tree = asTree(kafkaTopology(KAFKA))
    expect(tree).toHaveLength(9)
    expect(tree[0]).toMatch(
      /^orders \(2 partitions, kept 604800000 ms\) -> orders\.billing\.retry\.250ms, /,
    )
    expect(tree.at(-2)).toBe('├─ orders.billing.dlq (2 partitions, kept 1209600000 ms)')
    expect(tree.at(-1)).toBe('└─ orders.billing.replayed (2 partitions, kept 1209600000 ms)')
  })

  it('shows a queue without a source separately', () => {
    const stray = queue('stray', {
      'dead-letter-exchange': '',
      'dead-letter-routing-key': 'orders',
      'message-ttl': 1,
    })
    const queues = [...(RABBITMQ.queues ?? []), { ...stray, policyName: 'waiting' }]
    const tree = asTree(rabbitmqTopology({ ...RABBITMQ, queues }))
    expect(tree.at(-1)).toBe('stray (quorum, waits 1 ms, policy waiting) -> orders')
  })

  it('lets no escape sequence of a name through to a terminal', () => {
    const places = [{ name: 'a\u001b[2J', role: 'source' as const, about: '' }]
    expect(asTree({ places, routes: [] })).toEqual([String.raw`a\u{1b}[2J ()`])
  })

  it('is a Mermaid flowchart, whatever signs are in a name', () => {
    expect(asMermaid(rabbitmqTopology(RABBITMQ))).toBe(`flowchart LR
  p0["orders"]
  p1["orders.dlq"]
  p2["orders.delay.5s"]
  p0 -->|"by orders.dlx"| p1
  p2 -->|"after the delay"| p0
`)
    const places = [{ name: 'a"]; click p0 "javascript:x', role: 'source' as const, about: '' }]
    expect(asMermaid({ places, routes: [] })).toBe(
      'flowchart LR\n  p0["a#34;#93;#59; click p0 #34;javascript:x"]\n',
    )
  })
})
