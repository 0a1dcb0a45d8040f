import type { ListedBlock } from './blocks.ts'

/** Names that blocks use without an import, because every reader has them: a handler, an address, an order. */
export const CONTEXT = `import type { Handler, SendAgain, Transport } from '@redrive/runtime'
declare global {
  const url: string
  const brokers: string[]
  const topic: string
  const group: string
  const pool: import('pg').Pool
  const transport: Transport
  const handler: Handler
  const handle: Handler
  const handleOrder: Handler
  const order: { readonly id: string; readonly total: number }
  function charge(order: unknown): Promise<void>
  const send: SendAgain
  class CardDeclined extends Error {
    readonly reason: string
  }
}
`

/** Files of the reader that blocks import, by their paths from the folder of the blocks. */
export const FILES: Readonly<Record<string, string>> = {
  'app.module.ts': 'export class AppModule {}',
  'config.service.ts':
    'export class ConfigService { readonly rabbitmqUrl = process.env.RABBITMQ_URL! }',
  'delivery.ts': `import type { Delivery } from '@redrive/core'
export interface MyDelivery extends Delivery { readonly tag: number }
export declare function toDelivery(message: unknown): MyDelivery`,
  'options.ts': `import type { Decision } from '@redrive/core'
import type { MyDelivery } from './delivery.ts'
interface Broker { settle(delivery: MyDelivery, decision: Decision): Promise<boolean> }
export interface ResolvedOptions { readonly queue: string; readonly broker: Broker }`,
  'order.service.ts': 'export class OrderService {}',
  'schemas.ts': `import { z } from 'zod'
export const OrderPlaced = z.object({ id: z.string() })`,
  'signatures.ts': `import type { OutboundEvent } from '@redrive/runtime'
export declare function isSigned(headers: OutboundEvent['headers']): boolean`,
  'work.ts': `export declare function charge(): Promise<void>
export declare function sendMail(): Promise<void>`,
  'world.ts': `import type { DeadLetterStore } from '@redrive/runtime'
import type { StoreFixture, TransportFixture } from '@redrive/testing'
interface MyStoreFixture extends StoreFixture { kill(store: DeadLetterStore): Promise<void> }
export declare function myFixture(): Promise<TransportFixture>
export declare function openFixture(): Promise<TransportFixture>
export declare function restart(): Promise<void>
export declare function openStoreFixture(options?: { maxBytes: number }): Promise<MyStoreFixture>`,
  'capabilities.ts': `import type { Capabilities } from '@redrive/runtime'
export declare const CAPABILITIES: Capabilities`,
  '../src/capabilities.ts': `export { CAPABILITIES } from '../pages/capabilities.ts'`,
}

/** The used part of packages that the workspace does not install, because no test needs them. */
export const NOT_INSTALLED: Readonly<Record<string, string>> = {
  '@fastify/http-proxy': `import type { FastifyPluginAsync } from 'fastify'
const proxy: FastifyPluginAsync<{ upstream: string; prefix: string }>
export default proxy`,
  '@nestjs/terminus': `export class HealthCheckService { check(indicators: (() => object)[]): Promise<object> }
export function HealthCheck(): MethodDecorator`,
}

/** Blocks that are not compiled. */
export const EXCEPTIONS: readonly ListedBlock[] = [
  [
    'docs/kafka.md',
    "import { KafkaJS } from '@confluentinc/kafka-javascript'",
    'the installation of this client downloads a binary',
  ],
]

/** Blocks that print, but no proof runs them. */
export const NOT_RUN: readonly ListedBlock[] = [
  [
    'docs/doctor.md',
    'import { diagnose',
    'needs three brokers; `pnpm proofs doctor` runs diagnose',
  ],
  ['packages/doctor/README.md', 'import { diagnose', 'the same'],
  ['packages/api/README.md', 'import { ApiError', 'needs a server with dead letters of the reader'],
]
