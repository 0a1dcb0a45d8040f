import { Catch } from '@nestjs/common'
import { type Observable, throwError } from 'rxjs'

/**
 * Passes errors of `@EventPattern` handlers on unchanged. The default filter of NestJS replaces them by the text
 * 'Internal server error', and Redrive could not distinguish an outage from a bug.
 */
export class RedriveExceptionFilter {
  catch(exception: unknown): Observable<never> {
    return throwError(() => exception)
  }
}

Catch()(RedriveExceptionFilter)
