// Consumers as their documentation shows them.
import 'reflect-metadata'
import { Controller, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Ctx, EventPattern, type KafkaContext, Payload, Transport } from '@nestjs/microservices'
import { exponential } from '@redrive/core'
import { kafka } from '@redrive/kafka'
import { consume } from '@redrive/runtime'
import kafkajsModule from 'kafkajs'
import type { Lane, Racer } from './race.ts'

/**
 * The default policy with shorter delays, and each retry through a topic. Each failure counts: the course ends
 * with the poison record, so no later record could prove that the record is at fault.
 */
export const redriveRacer: Racer = {
  name: 'redrive',
  reportsTheEnd: true,
  async start({ hosts, topic, group, handle }) {
    const transport = kafka({ brokers: hosts, topic, group })
    const retry = {
      maxInlineDelay: 0,
      unproven: 'off',
      backoff: exponential({ base: '250ms', cap: '1s' }),
    } as const
    const handler = ({ lane }: { readonly lane: string | undefined }) => handle(Number(lane))
    const consumer = await consume(transport, handler, { retry })
    return { group, stop: () => consumer.stop() }
  },
}

/** Uses only `eachMessage`. */
export const kafkajsRacer: Racer = {
  name: 'kafkajs, eachMessage',
  async start({ hosts, topic, group, handle }) {
    const { Kafka, logLevel } = kafkajsModule
    const client = new Kafka({ brokers: [...hosts], logLevel: logLevel.NOTHING })
    const consumer = client.consumer({ groupId: group })
    await consumer.connect()
    await consumer.subscribe({ topics: [topic], fromBeginning: true })
    await consumer.run({ eachMessage: async ({ message }) => handle(Number(message.key)) })
    return { group, stop: () => consumer.disconnect() }
  },
}

/** An event handler that throws; `KafkaRetriableException` has no effect in event handlers. */
export const nestRacer: Racer = {
  name: 'NestJS, event handler',
  start: startNest,
}

async function startNest({ hosts, topic, group, handle }: Lane) {
  class Orders {
    handle(_body: unknown, context: KafkaContext): void {
      handle(Number(context.getMessage().key))
    }
  }
  class Root {}
  decorate(Orders, topic)
  Module({ controllers: [Orders] })(Root)
  const service = await NestFactory.createMicroservice(Root, {
    transport: Transport.KAFKA,
    logger: false,
    options: {
      client: { brokers: [...hosts] },
      consumer: { groupId: group },
      subscribe: { fromBeginning: true },
      postfixId: '',
    },
  })
  await service.listen()
  return { group, stop: () => service.close() }
}

/**
 * Does the work of `@Controller()`, `@EventPattern(topic)`, `@Payload()` and `@Ctx()`, because Node
 * does not run decorators.
 */
function decorate(controller: { readonly prototype: object; new (): object }, topic: string): void {
  const { prototype } = controller
  const method = Object.getOwnPropertyDescriptor(prototype, 'handle') as PropertyDescriptor
  Payload()(prototype, 'handle', 0)
  Ctx()(prototype, 'handle', 1)
  EventPattern(topic)(prototype, 'handle', method)
  Controller()(controller)
}
