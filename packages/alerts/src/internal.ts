/** Exports for packages of this repository. They can change in any version. */
export { allowProblem } from '@redrive/sinks/internal'
export { isEmailAddress } from './channels/email.ts'
export {
  deliveryFailureOf,
  deliverySignal,
  REJECTIONS_MAX,
  type DeliveryFailure,
} from './delivery-failure.ts'
export { runbookOf } from './notice.ts'
