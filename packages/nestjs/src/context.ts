import { BaseRpcContext } from '@nestjs/microservices'
import type { AttemptContext, Message } from '@redrive/runtime'

/** The context of an `@EventPattern` handler: `@Ctx() context: RedriveContext`. */
export class RedriveContext extends BaseRpcContext<[Message, AttemptContext, string]> {
  getMessage(): Message {
    return this.args[0]
  }

  /** Returns the number and the signal of the attempt. */
  getAttempt(): AttemptContext {
    return this.args[1]
  }

  getPattern(): string {
    return this.args[2]
  }
}
