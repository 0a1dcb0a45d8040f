import { ProtocolError } from '@platformatic/kafka'
import { describe, expect, it } from 'vitest'
import { Publisher } from '../src/publish.ts'
import { type OnRequest, PRODUCE, Process } from './process.ts'
import { onRig, type Rig, textOf, until } from './rig.ts'

const copy = (text: string) => ({ key: null, value: Buffer.from(text), headers: [] })

/** Copies and how the broker stores them. */
export function publishingCopies(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: 2 })

  const publisher = (rig: Rig, onProduce: OnRequest): Publisher => {
    const context = new Process((apiKey, send, callback) =>
      apiKey === PRODUCE ? onProduce(apiKey, send, callback) : send(),
    )
    const options = { clientId: 'publisher', bootstrapBrokers: [...brokers], context }
    const made = new Publisher({ client: options, confirmTimeoutMs: 5_000 })
    rig.atEnd(() => made.close())
    return made
  }

  describe('a publisher', () => {
    it(
      'sends nothing again automatically when the broker finds a gap in the sequence numbers',
      on(async (rig) => {
        let isStored = false
        const sending = publisher(rig, (_, send, callback) => {
          if (isStored) return send()
          send((error, answer) => {
            // A partition that is new may have no leader yet: then nothing was stored.
            if (error !== null) return callback(error, answer)
            isStored = true
            callback(new ProtocolError('OUT_OF_ORDER_SEQUENCE_NUMBER'))
          })
        })
        const [topicPartition] = rig.topicPartitions()
        if (topicPartition === undefined) throw new Error('There is no partition.')
        await until('it is stored', async () => {
          await expect(sending.send(topicPartition, copy('stored'))).rejects.toThrow(
            'Producing messages failed',
          )
          return isStored
        })
        await sending.send(topicPartition, copy('next'))
        expect((await rig.read(rig.topic)).map(textOf)).toEqual(['stored', 'next'])
      }),
    )

    it(
      'sends one request at a time for a partition, even when its leader changes',
      on(async (rig) => {
        const held: (() => void)[] = []
        const sending = publisher(rig, (_, send) => {
          if (held.length > 0) return send()
          held.push(send)
        })
        const [first, second] = rig.topicPartitions()
        if (first === undefined || second === undefined)
          throw new Error('There are two partitions.')
        // The leader is unknown first and known later: this counts as a change.
        const begun = sending.send(first, copy('1'))
        await until('the first is on its way', () => held.length === 1)
        const waiting = sending.send(first, copy('2'))
        await sending.send(second, copy('elsewhere'))
        held[0]?.()
        await Promise.all([begun, waiting])
        expect((await rig.read(rig.topic)).map(textOf)).toEqual(['1', '2', 'elsewhere'])
      }),
    )
  })
}
