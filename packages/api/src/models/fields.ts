import { z } from 'zod'
import {
  ACTIONS,
  FAILURE_CLASSES,
  GROUP_STATES,
  ITEM_STATES,
  RUN_STATES,
  STATUSES,
} from '../enums.ts'

/** A timestamp: milliseconds since 1970 on the clock of the database. */
export const timestamp = z.number()
export const count = z.number()
export const id = z.uuid()
export const failureClass = z.enum(FAILURE_CLASSES)
export const status = z.enum(STATUSES)
export const groupState = z.enum(GROUP_STATES)
export const runState = z.enum(RUN_STATES)
export const itemState = z.enum(ITEM_STATES)
export const action = z.enum(ACTIONS)
export const nextCursor = z
  .string()
  .optional()
  .describe('Cursor of the next page; absent on the last page')
