import { Injectable } from '@nestjs/common'
import { business, exponential } from '@redrive/core'
import { Redrive } from '@redrive/nestjs'
import type { AttemptContext, Message } from '@redrive/runtime'
import { CardDeclined, Order, PaymentService } from './payments.ts'

@Injectable()
export class OrderService {
  constructor(private readonly payments: PaymentService) {}

  @Redrive({
    source: 'orders',
    schema: Order,
    classify: [business(CardDeclined)],
    retry: { backoff: exponential({ base: '100ms', cap: '1m' }) },
  })
  async charge({ body }: Message<Order>, { attempt }: AttemptContext): Promise<void> {
    await this.payments.charge(body, attempt)
  }
}
