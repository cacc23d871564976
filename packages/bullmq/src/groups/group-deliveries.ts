// Delivers the entries that concern groups: enqueues members, reports the ends of members to their groups, and cancels the members of
// a cancelled group in their queues.
import type { GroupId, GroupResult } from '@bullpen/contract'
import { groupRuleId, memberDigest, memberTask } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { storeRule } from '../cancel/by-filter.ts'
import { groupEndedChannel, groupKeys, queueKeys } from '../keys.ts'
import { wakeLeader } from '../leader/leader.ts'
import type { Claimed, Deliveries } from '../outbox/deliveries.ts'
import { recordOf } from '../outbox/follow-up-deliveries.ts'
import type { GroupCancelEntry, MemberEndEntry, MemberEntry } from '../outbox/outbox-entry.ts'
import type { TargetQueues } from '../outbox/target-queues.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { endMembersScript } from '../store/scripts.ts'

export interface GroupDeliveryOptions {
  readonly redis: Commander
  readonly namespace: string
  readonly targets: TargetQueues
  /** The time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** Delivers everything in a group's outbox. */
  readonly forwardGroup: (id: GroupId) => Promise<void>
  /** Called for each group that has ended. */
  readonly onEnded: (result: GroupResult) => void
  /** Called if an entry could not be delivered. The entry stays in the outbox. */
  readonly onRefused: (refused: { readonly queue: string; readonly error: unknown }) => void
}

type GroupDeliveries = Pick<Deliveries, 'member' | 'memberEnd' | 'groupCancel'>

/** What a group that no longer exists owes. */
const NOTHING_OWED = [0, ''] as const

/** All members of a group that is cancelled match, whenever they were enqueued. The latest time that a Date can represent, in ms. */
const AT_ANY_TIME = 8.64e15

export function groupDeliveries(options: GroupDeliveryOptions): GroupDeliveries {
  const { redis, namespace, targets, now, forwardGroup, onEnded, onRefused } = options
  const channel = groupEndedChannel(namespace)

  /** Stores ends in a group. Resolves with how much follows from changes of the group and has not been delivered yet. */
  async function end(id: GroupId, ends: readonly Pick<MemberEndEntry, 'member' | 'letter'>[]): Promise<number> {
    const more = ends.flatMap(({ member, letter }) => [member, letter])
    const stored = await runScript(redis, endMembersScript, groupKeys(namespace, id), { id, channel }, more)
    // A group that no longer exists has ended long ago.
    const [owed, result] = stored ?? NOTHING_OWED
    if (result !== '') onEnded(result)
    return owed
  }

  /** Reports ends to a group. Resolves with false if what follows from them has not been delivered yet. */
  async function report(id: GroupId, ends: readonly MemberEndEntry[]): Promise<boolean> {
    if ((await end(id, ends)) === 0) return true
    await forwardGroup(id)
    return (await end(id, ends)) === 0
  }

  /** Enqueues a member. Resolves with false if its group is cancelled, so that it was not enqueued. */
  async function add({ group, member, template }: MemberEntry): Promise<boolean> {
    const { task, data, lines } = memberTask({ id: group, member }, template, now(), sha256)
    const forwarded = recordOf(memberDigest({ id: group, member }, sha256))
    const reply = await targets.of(task.queue)(task, { data, followUps: lines, forwarded, group: `${group} ${member}` })
    return reply !== 'group cancelled'
  }

  return {
    async groupCancel(claimed, onDelivered) {
      const cancelling = claimed.map(async ({ id, entry }) => {
        try {
          await cancelMembers(redis, namespace, entry)
          onDelivered([id])
        } catch (error) {
          onRefused({ queue: entry.queue, error })
        }
      })
      await Promise.all(cancelling)
    },

    async member(claimed, onDelivered) {
      const cancelled: Claimed<MemberEntry>[] = []
      const adding = claimed.map(async (each) => {
        try {
          if (await add(each.entry)) onDelivered([each.id])
          else cancelled.push(each)
        } catch (error) {
          onRefused({ queue: each.entry.template.queue, error })
        }
      })
      await Promise.all(adding)
      for (const [group, ofGroup] of byGroup(cancelled)) {
        const ends = ofGroup.map(({ entry }) => ({ member: entry.member, letter: 'x' as const }))
        try {
          if ((await end(group, ends)) > 0) await forwardGroup(group)
          onDelivered(ofGroup.map(({ id }) => id))
        } catch (error) {
          onRefused({ queue: group, error })
        }
      }
    },

    async memberEnd(claimed, onDelivered) {
      const reporting = [...byGroup(claimed)].map(async ([group, ofGroup]) => {
        try {
          const ends = ofGroup.map(({ entry }) => entry)
          if (await report(group, ends)) onDelivered(ofGroup.map(({ id }) => id))
        } catch (error) {
          onRefused({ queue: group, error })
        }
      })
      await Promise.all(reporting)
    },
  }
}

/**
 * Stores the rule that cancels the tasks of a group or of a pipeline run in one queue. The call is idempotent. `ruleId` is the rule's id.
 * The promise `known` resolves once no consumer can start one of these tasks, and never rejects.
 *
 * @throws BullpenError `too_many_cancels`.
 */
export async function cancelMembers(
  redis: Commander,
  namespace: string,
  { group, queue, by }: Omit<GroupCancelEntry, 'kind'>,
  ruleId = groupRuleId(group, queue),
): Promise<{ readonly known: Promise<void> }> {
  const rule = { id: ruleId, queue, group, before: AT_ANY_TIME, reason: 'cancelled', by } as const
  const { known } = await storeRule(redis, queueKeys(namespace, queue), rule)
  // If this message is lost, the leader notices the rule in its next round.
  wakeLeader(redis, namespace, queue).catch(() => {})
  return { known }
}

function byGroup<Entry extends MemberEntry | MemberEndEntry>(
  claimed: readonly Claimed<Entry>[],
): Map<GroupId, Claimed<Entry>[]> {
  return Map.groupBy(claimed, ({ entry }) => entry.group)
}
