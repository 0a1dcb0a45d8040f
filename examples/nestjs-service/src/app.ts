import { Module } from '@nestjs/common'
import { RedriveModule } from '@redrive/nestjs'
import { rabbitmq } from '@redrive/rabbitmq'
import { HealthController } from './health.ts'
import { OrderService } from './orders.ts'
import { PaymentService } from './payments.ts'
import { url, queueOf } from './settings.ts'
import { ShipmentController } from './shipments.ts'

@Module({
  imports: [
    RedriveModule.forRoot({
      transport: ({ source }) => rabbitmq({ url, queue: queueOf(source) }),
    }),
  ],
  controllers: [HealthController, ShipmentController],
  providers: [OrderService, PaymentService],
})
export class AppModule {}
