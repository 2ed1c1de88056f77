"""Controller: keeps one cluster's slurmctld, its address and its configuration as declared."""

import time
from collections.abc import Callable

import msgspec

from kubeslurm.api import names
from kubeslurm.api.kinds import CONTROLLER
from kubeslurm.api.slinky.controller import Controller
from kubeslurm.control import deletion, references, refusals, status
from kubeslurm.control.memory import Memories
from kubeslurm.control.registration import Context
from kubeslurm.decide.config.acceptance import TRIAL_PAUSE, AcceptanceStep, decide_acceptance
from kubeslurm.decide.config.facts import Facts, Trial
from kubeslurm.decide.config.plan import Plan, decide
from kubeslurm.engine.controller import Requeue
from kubeslurm.engine.key import Key
from kubeslurm.reconcile.controller import trials
from kubeslurm.reconcile.controller.delivery import Deliverer
from kubeslurm.reconcile.controller.keys import Keys
from kubeslurm.reconcile.controller.lost_node import next_look
from kubeslurm.reconcile.controller.memory import Memory
from kubeslurm.reconcile.controller.objects import Objects
from kubeslurm.reconcile.controller.observe import observe
from kubeslurm.report import controller as report
from kubeslurm.report.controller import Outcome
from kubeslurm.report.refusal import describe

# Seconds between two looks at whether lines that nothing asks for are still in use: nobody tells when jobs end.
KEPT_LINES_PAUSE = 5.0
# How often Slurm is asked whether the last job is over that a new key waits for.
KEY_PAUSE = 3.0


class ControllerReconciler:
    """One pass: observe, decide, build and apply, report."""

    def __init__(self, context: Context, clock: Callable[[], float] = time.monotonic) -> None:
        self.context = context
        self.kube = context.kube
        self.caches = context.caches
        self.clock = clock
        self.memories = Memories(Memory)
        self.keys = Keys(context)
        self.objects = Objects(context.kube, context.caches, context.events)
        self.deliverer = Deliverer(context.kube, context.events, clock)

    async def reconcile(self, key: Key) -> Requeue | None:
        controller = self.caches.store(CONTROLLER).get(key)
        if controller is None:
            self.memories.forget(key)
            return None
        if controller.deleting:
            if deletion.may_go(controller, references.holders(self.caches, key)):
                await self.release(controller)
                return None
        else:
            controller = await self.kube.add_finalizer(CONTROLLER, controller, names.FINALIZER)
            await self.objects.apply_second_owner(controller)

        memory = self.memories.of(key)
        await self.keys.make(controller)
        facts = await observe(self.context, controller, memory, self.clock)
        facts = await self.start_trial(controller, facts)
        plan = decide(facts)
        outcome = await self.act(controller, facts, plan, memory)
        await status.write(self.kube, CONTROLLER, controller, report.status(controller, facts, plan, outcome))
        return _next_pass(facts, plan, outcome)

    async def release(self, controller: Controller) -> None:
        """Lets the deletion of the Controller go on, and then that of its children."""
        if not deletion.is_orphaning(controller):
            await self.objects.delete_second_owner(controller)
        await self.kube.remove_finalizer(CONTROLLER, controller, names.FINALIZER)

    async def start_trial(self, controller: Controller, facts: Facts) -> Facts:
        """Starts a trial if one is due; a trial that the API server rejects is a fact to decide by."""
        if facts.desired is None or decide_acceptance(facts).step is not AcceptanceStep.START_TRIAL:
            return facts
        try:
            node = facts.pod.spec.nodeName if facts.pod else ""
            await trials.start(self.kube, controller, facts.desired, node)
        except refusals.REFUSED as error:
            trial = Trial("not started", describe(refusals.rejection_of(error, names.SLURMCTLD)))
            return msgspec.structs.replace(facts, trial=trial)
        return facts

    async def act(self, controller: Controller, facts: Facts, plan: Plan, memory: Memory) -> Outcome:
        """Carries out the plan; a rejection by the API server is returned, so that the rest goes on."""
        rejected = None
        if plan.frees_pod:
            await self.objects.free_pod(controller, facts)
        if facts.desired is not None:
            await self.objects.apply_config(controller, facts, plan)
            await trials.clear(self.kube, self.caches, controller, plan.acceptance.kept_trial)
            workload = self.objects.apply_workload(controller, facts, plan, memory)
            rejected = await refusals.rejection(workload, names.SLURMCTLD)
        await self.keys.keep(controller)
        slurm = self.context.clusters.of(Key(*controller.key))
        error = await self.deliverer.deliver(controller, facts, plan, memory, slurm)
        return Outcome(rejected=rejected, reconfigure_error=error)


def _next_pass(facts: Facts, plan: Plan, outcome: Outcome) -> Requeue | None:
    if facts.trial is not None and facts.trial.outcome == "not started":
        return Requeue(after=refusals.PAUSE)
    if plan.acceptance.step is AcceptanceStep.REPEAT_TRIAL:
        return Requeue(after=TRIAL_PAUSE)
    if plan.delivery.retry_after is not None:
        return Requeue(after=plan.delivery.retry_after)
    if facts.kept:
        return Requeue(after=KEPT_LINES_PAUSE)
    if facts.waiting_key is not None:
        return Requeue(after=KEY_PAUSE)
    if facts.node_missing_for is not None and not plan.frees_pod:
        return Requeue(after=next_look(facts.node_missing_for))
    return refusals.again(outcome.rejected)
