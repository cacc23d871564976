import { brokerConformance } from '@bullpen/testkit/internal'
import { openBullmq } from './backend.fixture.ts'

brokerConformance('BullMQ', openBullmq)
