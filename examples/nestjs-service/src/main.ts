import 'reflect-metadata'
import { Logger } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import type { MicroserviceOptions } from '@nestjs/microservices'
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify'
import { exponential } from '@redrive/core'
import { RedriveExceptionFilter, RedriveServer } from '@redrive/nestjs/microservices'
import { rabbitmq } from '@redrive/rabbitmq'
import { AppModule } from './app.ts'
import { port, queueOf, url } from './settings.ts'

const app = await NestFactory.create<NestFastifyApplication>(AppModule, new FastifyAdapter())
// Without it, SIGTERM ends the process in the middle of a handler.
app.enableShutdownHooks()

const strategy = new RedriveServer({
  transport: rabbitmq({ url, queue: queueOf('shipments') }),
  consume: { retry: { backoff: exponential({ base: '100ms', cap: '1m' }) } },
})
const events = app.connectMicroservice<MicroserviceOptions>({ strategy })
events.useGlobalFilters(new RedriveExceptionFilter())

await app.startAllMicroservices()
await app.listen(port, '127.0.0.1')
new Logger('Main').log(`listening on ${port}`)
