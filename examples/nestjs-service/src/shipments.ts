import { Controller, Logger } from '@nestjs/common'
import { Ctx, EventPattern, Payload } from '@nestjs/microservices'
import { RedriveContext } from '@redrive/nestjs/microservices'

/** A handler as it was written for the RabbitMQ transport of NestJS. */
@Controller()
export class ShipmentController {
  readonly #log = new Logger(ShipmentController.name)

  @EventPattern<string>('shipment.sent')
  sent(@Payload() { id }: { readonly id: string }, @Ctx() context: RedriveContext): void {
    const { attempt } = context.getAttempt()
    if (attempt === 1) {
      throw Object.assign(new Error('connect ECONNREFUSED mail:25'), { code: 'ECONNREFUSED' })
    }
    this.#log.log(`announced ${id}, attempt ${attempt}`)
  }
}
