import { Controller, Get, ServiceUnavailableException } from '@nestjs/common'
import { RedriveHealth, type RedriveHealthResult } from '@redrive/nestjs'

/** With `@nestjs/terminus`: `this.terminus.check([() => this.redrive.isHealthy('redrive')])`. */
@Controller('health')
export class HealthController {
  constructor(private readonly redrive: RedriveHealth) {}

  @Get()
  read(): RedriveHealthResult<'redrive'> {
    const result = this.redrive.isHealthy('redrive')
    if (result.redrive.status === 'down') throw new ServiceUnavailableException(result)
    return result
  }
}
