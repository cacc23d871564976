// Checks the follow-ups of a catalogue's definitions, because some faults show only when all definitions exist.
import { BullpenError } from '../../errors/errors.ts'
import { MAX_NESTED_FOLLOW_UPS } from '../../task/follow-up.ts'
import type { TaskDefinition } from '../task-definition.ts'
import type { FollowUpRule } from './rules.ts'

/**
 * Checks that every follow-up is in the catalogue, and that those of failures and of any end are nested at most 8 deep. These follow-ups
 * are stored with the task, and so are their own, so a cycle would have no end. Follow-ups of a success may form a cycle, because
 * they are made one after another.
 *
 * @throws BullpenError `invalid_definition`.
 */
export function checkFollowUps(definitions: ReadonlyMap<string, TaskDefinition>): void {
  /** How deeply the follow-ups of each definition are nested. */
  const depths = new Map<TaskDefinition, number>()
  const targetOf = (source: TaskDefinition, rule: FollowUpRule): TaskDefinition => {
    const target: TaskDefinition | undefined = rule.task()
    if (target !== undefined && definitions.get(target.name) === target) return target
    throw new BullpenError(
      'invalid_definition',
      `a follow-up of task '${source.name}' is '${target?.name}', which is not in the catalogue; pass that definition to defineCatalogue, too`,
    )
  }
  const depthOf = (definition: TaskDefinition, path: readonly TaskDefinition[]): number => {
    const known = depths.get(definition)
    if (known !== undefined || definition.followUps === undefined) return known ?? 0
    const here = [...path, definition]
    if (path.includes(definition)) {
      const cycle = here.slice(here.indexOf(definition)).map(({ name }) => name)
      throw new BullpenError(
        'invalid_definition',
        `the follow-ups of these tasks form a cycle: ${cycle.join(' → ')}; only onSuccess may lead back to the same task`,
      )
    }
    const { failure, end } = definition.followUps
    const nested = [...failure, ...end].map((rule) => depthOf(targetOf(definition, rule), here))
    const depth = nested.length === 0 ? 0 : 1 + Math.max(...nested)
    depths.set(definition, depth)
    return depth
  }
  for (const definition of definitions.values()) {
    for (const rule of definition.followUps?.success ?? []) targetOf(definition, rule)
    const depth = depthOf(definition, [])
    if (depth > MAX_NESTED_FOLLOW_UPS) {
      throw new BullpenError(
        'invalid_definition',
        `the follow-ups of task '${definition.name}' are nested ${depth} deep; onFailure and onEnd may be nested at most ${MAX_NESTED_FOLLOW_UPS} deep`,
      )
    }
  }
}
