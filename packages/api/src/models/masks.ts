import { z } from 'zod'
import { DETECTORS } from '../enums.ts'

const sourceMasks = z
  .object({
    source: z.string(),
    paths: z
      .array(
        z.object({
          pointer: z.string().describe('JSON Pointer; `*` matches every item or key'),
          isOptional: z
            .boolean()
            .describe('Whether a body without the value is shown. Otherwise it is hidden'),
        }),
      )
      .describe('Masked values of bodies'),
    headers: z.array(z.string()).describe('Names of masked headers, in lower case'),
  })
  .meta({ id: 'SourceMasks' })

export const masks = z.object({
  sources: z.array(sourceMasks).describe('Sources with masks'),
  detectors: z
    .array(z.enum(DETECTORS))
    .describe('Kinds of values that are hidden in texts of every source'),
})
