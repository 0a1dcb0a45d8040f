// A program of a user: versions.proof.ts installs the packed packages and runs it.
import 'reflect-metadata'
import { Controller, Injectable, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { EventPattern, type MicroserviceOptions, Payload } from '@nestjs/microservices'
import { MemoryBroker, memory, send } from '@redrive/memory'
import { Redrive, RedriveHealth, RedriveModule } from '@redrive/nestjs'
import { RedriveExceptionFilter, RedriveServer } from '@redrive/nestjs/microservices'
import type { AttemptContext, Message } from '@redrive/runtime'

const broker = new MemoryBroker()
const done: string[] = []

function failFirst(attempt: number): void {
  if (attempt > 1) return
  throw Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

@Injectable()
class PaymentService {
  charge(id: string): void {
    done.push(id)
  }
}

@Injectable()
class OrderService {
  constructor(private readonly payments: PaymentService) {}

  @Redrive<{ readonly id: string }>({ source: 'orders' })
  handle({ body }: Message<{ readonly id: string }>, { attempt }: AttemptContext): void {
    failFirst(attempt)
    this.payments.charge(body.id)
  }
}

@Controller()
class Shipments {
  @EventPattern<string>('shipment.sent')
  sent(@Payload() data: { readonly id: string }): void {
    done.push(data.id)
  }
}

@Module({
  imports: [
    RedriveModule.forRoot({
      transport: ({ source }) => memory({ broker, queue: source }),
      defaults: {
        logger: 'off',
        retry: { backoff: { kind: 'exponential', base: '10ms', cap: '1s' } },
      },
    }),
  ],
  controllers: [Shipments],
  providers: [OrderService, PaymentService],
})
class AppModule {}

async function main(): Promise<void> {
  const strategy = new RedriveServer({ transport: memory({ broker, queue: 'shipments' }) })
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, {
    strategy,
    logger: ['error', 'warn'],
  })
  app.useGlobalFilters(new RedriveExceptionFilter())
  await app.listen()
  send(broker, 'orders', { id: 'order' })
  send(broker, 'shipments', { pattern: 'shipment.sent', data: { id: 'shipment' } })
  while (done.length < 2) await new Promise((resolve) => setTimeout(resolve, 10))
  const { status } = app.get(RedriveHealth).isHealthy('redrive').redrive
  await app.close()
  console.log(`${done.sort().join(', ')}, ${status}`)
}

void main()
