// Shows an input to people without its sensitive parts.
import type { TaskDefinition } from '@bullpen/contract'
import type { z } from 'zod'
import { REDACTED } from './redactor.ts'
import { hasSensitiveParts, isSensitive, partsOf } from './sensitive-values.ts'

type Schema = z.core.$ZodType

/** Returns a copy of the input in which the sensitive parts are replaced. An input without such parts is not copied. */
export function redactedInput({ input: schema }: Pick<TaskDefinition, 'input'>, input: unknown): unknown {
  return hasSensitiveParts(schema) ? redacted(schema, input) : input
}

function redacted(schema: Schema, value: unknown): unknown {
  if (value === undefined || value === null) return value
  if (isSensitive(schema)) return REDACTED
  const { def } = (schema as z.core.$ZodTypes)._zod
  switch (def.type) {
    case 'object': {
      const { shape, catchall } = def
      // An input may have a field named `constructor`, which every object inherits.
      return mapEntries(value, (name) => (Object.hasOwn(shape, name) ? shape[name] : catchall))
    }
    case 'record':
      return mapEntries(value, () => def.valueType, isSensitive(def.keyType))
    case 'array':
      return mapElements(value, () => def.element)
    case 'tuple':
      return mapElements(value, (i) => def.items[i] ?? def.rest ?? undefined)
    default:
      // The parts of a union, a pipe or a wrapper such as `.optional()` describe the same value. Of a union, any option may apply.
      return partsOf(schema).reduce<unknown>((left, part) => redacted(part, left), value)
  }
}

function mapElements(value: unknown, schemaOf: (index: number) => Schema | undefined): unknown {
  if (!Array.isArray(value)) return value
  return value.map((each, i) => redactedBy(schemaOf(i), each))
}

function mapEntries(value: unknown, schemaOf: (name: string) => Schema | undefined, hidesNames = false): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  const entries = Object.entries(value).map(([name, each], i) => {
    // Two entries may not have the same name.
    const shown = hidesNames ? `${REDACTED} ${i + 1}` : name
    return [shown, redactedBy(schemaOf(name), each)] as const
  })
  return Object.fromEntries(entries)
}

function redactedBy(schema: Schema | undefined, value: unknown): unknown {
  return schema === undefined ? value : redacted(schema, value)
}
